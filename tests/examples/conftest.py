# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""A tiny set of each generator, made once for all tests."""

import pytest

from tests.examples.tiny_sets import TINY


@pytest.fixture(scope="session")
def tiny_set(tmp_path_factory):
    made = {}

    def folder(benchmark):
        if benchmark not in made:
            made[benchmark] = tmp_path_factory.mktemp(benchmark)
            TINY[benchmark].run(made[benchmark])
        return made[benchmark]

    return folder
