"""The commands of `sdk`: a module for each, which reads options, calls the API and prints.

May import everything of `sdk` but `sdk.main`; heavy modules inside functions only.
"""
