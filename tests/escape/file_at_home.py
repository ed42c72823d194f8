# level: sandbox
# kernel: landlock_files
def attempt():
    """A file in the user's own folder."""
    import pwd
    return made_without_a_name(os.environ.get("USERS_HOME") or pwd.getpwuid(UID).pw_dir)
