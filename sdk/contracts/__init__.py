"""What an extension must keep to, as checks that its author runs; `sdk.testing` is their public face.

May import everything else of the SDK but its commands.
"""
