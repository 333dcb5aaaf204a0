"""What a hook is sent and what it answers: binding context, answer files, verdict. Pure: values in, values out."""
