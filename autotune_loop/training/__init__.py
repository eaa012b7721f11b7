"""Weights for a kind of device, learnt from random programs: which are drawn, what was timed of them, and the recipe.

Reads what runs have left; what starts them is `sdk.train_weights`.
"""
