"""Line-exact text files, and what a command may write."""
