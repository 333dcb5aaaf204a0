"""The AdmissionReview on the wire: v1 and v1beta1, decoded lazily, encoded so that kube-apiserver cannot misread it."""

from gateway.review.answers import JSON_PATCH, AnswerError, WebhookAnswer, WebhookStatus, read_answer
from gateway.review.errors import ReviewError
from gateway.review.request import (
    API_VERSIONS,
    DEPTH,
    GroupVersionKind,
    GroupVersionResource,
    Request,
    UserInfo,
    decode,
)
from gateway.review.response import Response, Status, annotation_key, denial_code, encode

__all__ = [
    "API_VERSIONS",
    "DEPTH",
    "JSON_PATCH",
    "AnswerError",
    "GroupVersionKind",
    "GroupVersionResource",
    "Request",
    "Response",
    "ReviewError",
    "Status",
    "UserInfo",
    "WebhookAnswer",
    "WebhookStatus",
    "annotation_key",
    "decode",
    "denial_code",
    "encode",
    "read_answer",
]
