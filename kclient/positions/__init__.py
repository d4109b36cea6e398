"""The position of each assigned partition, and how it is looked up, validated and reset."""
