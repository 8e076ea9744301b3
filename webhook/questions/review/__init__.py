"""What the webhook does with manifests and recorded reviews: `review`, its explanation and the playground."""
