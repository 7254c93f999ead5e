// Joined from the modules in desk/ by `make js`: change those.

// x
