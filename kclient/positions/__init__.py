"""Where each assigned partition is read next, and how that offset is found, checked and moved."""
