class UserError(ValueError):
    """What cannot be done, in one line for who asked. build.py prints it and ends."""
