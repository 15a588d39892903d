"""Outside suites as typed tools and gold programs, read at run time from their installed packages."""
