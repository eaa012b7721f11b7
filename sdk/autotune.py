from sdk.api.autotune import autotune  # noqa: F401
