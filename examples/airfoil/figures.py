"""The airfoil benchmark's figures."""


def draw(results, folder):
    """Draw."""
