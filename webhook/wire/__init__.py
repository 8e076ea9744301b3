"""AdmissionReview in, AdmissionReview out: the envelope only. It is strict; the object inside is tolerated."""
