"""The AdmissionReview on the wire: v1 and v1beta1, decoded lazily, encoded so that kube-apiserver cannot misread it."""
