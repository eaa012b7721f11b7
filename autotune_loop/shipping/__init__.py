"""What leaves a run: schedules that know what they were made for, in a folder to commit."""
