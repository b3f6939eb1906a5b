"""Executes a plan's reference program and the plan itself over a finite field, and compares; docs/audit.md."""
