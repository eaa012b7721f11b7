"""Operators of bytes: the integers that stand for real numbers, packed weights, and the generators that take them."""
