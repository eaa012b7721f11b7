"""What `import sdk` offers, one function a module."""
