package dev.admissiongateway.worker;

import admission.worker.v1.WorkerOuterClass.PolicyCall;
import admission.worker.v1.WorkerOuterClass.Outcome;
import admission.worker.v1.WorkerOuterClass.ReviewStreamRequest;
import admission.worker.v1.WorkerOuterClass.ReviewStreamRequest.Cancel;
import admission.worker.v1.WorkerOuterClass.ReviewStreamRequest.RequestItem;
import admission.worker.v1.WorkerOuterClass.ReviewStreamResponse;

import com.google.protobuf.ByteString;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The gateway's end of one ReviewStream. */
final class StreamClient extends ClientCall.Listener<ReviewStreamResponse> {
    private final ClientCall<ReviewStreamRequest, ReviewStreamResponse> call;
    private final BlockingQueue<ReviewStreamResponse> batches = new LinkedBlockingQueue<>();
    private final CompletableFuture<Status> ended = new CompletableFuture<>();

    StreamClient(Channel channel) {
        this.call = channel.newCall(Wire.STREAM, CallOptions.DEFAULT);
        call.start(this, new Metadata());
    }

    @Override
    public void onMessage(ReviewStreamResponse batch) {
        batches.add(batch);
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
        ended.complete(status);
    }

    StreamClient send(ReviewStreamRequest batch) {
        call.sendMessage(batch);
        return this;
    }

    StreamClient call(long id, PolicyCall.Builder policyCall) {
        return send(ReviewStreamRequest.newBuilder().addItems(item(id, policyCall)).build());
    }

    StreamClient cancel(long id) {
        RequestItem item =
                RequestItem.newBuilder().setId(id).setCancel(Cancel.getDefaultInstance()).build();
        return send(ReviewStreamRequest.newBuilder().addItems(item).build());
    }

    static RequestItem item(long id, PolicyCall.Builder policyCall) {
        return RequestItem.newBuilder().setId(id).setCall(policyCall).build();
    }

    static ByteString document(String text) {
        return ByteString.copyFromUtf8(text);
    }

    StreamClient halfClose() {
        call.halfClose();
        return this;
    }

    void breakOff() {
        call.cancel("the test breaks it", null);
    }

    /** The next message; it is only read now. */
    ReviewStreamResponse batch() throws InterruptedException {
        call.request(1);
        ReviewStreamResponse batch = batches.poll(Wire.PATIENCE, TimeUnit.SECONDS);
        if (batch == null) {
            throw new AssertionError("no message came");
        }
        return batch;
    }

    /** The next message's outcome, which is its only one, under this id. */
    Outcome only(long id) throws InterruptedException {
        ReviewStreamResponse batch = batch();
        if (batch.getItemsCount() != 1 || batch.getItems(0).getId() != id) {
            throw new AssertionError("expected one outcome, of " + id + ": " + batch);
        }
        return batch.getItems(0).getOutcome();
    }

    /** How the stream ended. What came until then, and was not read, is dropped. */
    Status end() throws Exception {
        call.request(1_000_000);
        return ended.get(Wire.PATIENCE, TimeUnit.SECONDS);
    }

    /** Messages that came and that nobody has asked for yet. */
    BlockingQueue<ReviewStreamResponse> batches() {
        return batches;
    }
}
