# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""Neural layers. Imports nothing itself: ``nn.functional`` must load with torch alone."""
