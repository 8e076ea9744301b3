"""What the hardware means: families of resources, the fleet as shapes, and whether a pod can ever be placed.

Facts only, no policy: a rule says what follows from them. Nothing here knows an AdmissionReview.
"""
