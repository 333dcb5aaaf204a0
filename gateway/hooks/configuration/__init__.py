"""What a hook prints with ``--config``, and the policies that it becomes. Pure: values in, values out."""
