"""CANO beside other kinds of data than tensors of points."""
