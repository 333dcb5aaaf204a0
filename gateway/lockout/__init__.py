"""What registering the gateway could make impossible while no gateway answers, and what stays possible."""
