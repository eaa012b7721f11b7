"""Target profiles, toolchains, generators and the on-device runner: nothing here imports another part."""
