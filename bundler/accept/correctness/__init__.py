"""Whether answers are right: fixed questions, asked when the service is idle and again under load."""
