"""What the hardware means: families of resources, the fleet as shapes, and whether a pod can ever be placed.

Facts only: rules decide what follows from them. Nothing here reads an AdmissionReview.
"""
