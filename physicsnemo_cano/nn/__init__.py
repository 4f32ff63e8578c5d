"""Neural layers. Imports nothing itself: ``nn.functional`` must load with torch alone."""
