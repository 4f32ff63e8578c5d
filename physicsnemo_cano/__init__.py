"""The Cluster Attention Neural Operator (CANO, arXiv 2609.39914) for NVIDIA PhysicsNeMo."""
