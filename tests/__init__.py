# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0
"""A regular package, which is found before the one of this name that smithers 0.0.1 installs."""
