"""What can be typed: each module declares some commands; what they do is beside this package."""
