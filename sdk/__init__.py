"""The command line and the public Python interface; nothing imports this package but its users."""
