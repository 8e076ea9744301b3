"""What existing pods and workloads would get: `scan`, and the PolicyReports, which deploy/components/reports writes."""
