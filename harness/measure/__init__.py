"""What a run recorded: metrics, checks, captures, traces and the files of its folder."""
