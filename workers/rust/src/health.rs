//! grpc.health.v1: the worker's status, under the empty service name and the contract's.
//!
//! The two messages have one field each, and are declared here instead of generated. A watch ends after it has sent
//! NOT_SERVING: an open one would delay the shutdown.

use prost::Message;
use tokio::sync::mpsc;
use tonic::Status;

use crate::contract::NAME;
use crate::service::Answers;
use crate::stages::{Stage, Stages, reached};

pub(crate) const SERVICE: &str = "grpc.health.v1.Health";

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    pub(crate) service: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct HealthCheckResponse {
    #[prost(enumeration = "ServingStatus", tag = "1")]
    pub(crate) status: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum ServingStatus {
    Unknown = 0,
    Serving = 1,
    NotServing = 2,
    ServiceUnknown = 3,
}

/// The current status. "The server ... SHOULD return NOT_FOUND" for a service that it does not know.
pub(crate) fn check(request: &HealthCheckRequest, stages: &Stages) -> Result<HealthCheckResponse, Status> {
    if !is_known(request) {
        return Err(Status::not_found(format!("unknown service {:?}", request.service)));
    }
    Ok(response(status(stages)))
}

/// The current status, and its only change, to NOT_SERVING.
pub(crate) fn watch(request: &HealthCheckRequest, stages: &Stages) -> Answers<HealthCheckResponse> {
    let (sender, receiver) = mpsc::channel(2); // for all messages of a watch, so that sending never waits
    let mut stages = stages.clone();
    let is_known = is_known(request);
    tokio::spawn(async move {
        let first = if is_known { status(&stages) } else { ServingStatus::ServiceUnknown };
        let _ = sender.try_send(Ok(response(first)));
        if first == ServingStatus::NotServing {
            return;
        }
        tokio::select! {
            () = reached(&mut stages, Stage::Leaving) => {}
            () = sender.closed() => return,
        }
        if is_known {
            let _ = sender.try_send(Ok(response(ServingStatus::NotServing)));
        }
    });
    Answers::new(receiver)
}

fn is_known(request: &HealthCheckRequest) -> bool {
    request.service.is_empty() || request.service == NAME
}

fn status(stages: &Stages) -> ServingStatus {
    if *stages.borrow() == Stage::Serving { ServingStatus::Serving } else { ServingStatus::NotServing }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status as i32 }
}
