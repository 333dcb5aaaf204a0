"""Where a configuration comes from: files, directories, hooks. (The cluster supplies the same texts.)"""
