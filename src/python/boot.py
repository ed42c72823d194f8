_CONFIG = {}
