//===- FakeStreams.cpp - streams and events -------------------------------===//
#include "test/shim/Streams.h"

#include <mutex>
#include <string>

using shim::runtime;
using shim::told;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
  const std::lock_guard lock(runtime().mutex);
  *stream = new CUstream_st{shim::currentDevice(), nullptr, nullptr, {}};
  runtime().streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(runtime().mutex);
  if (runtime().streams.erase(stream) == 0)
    return told(cudaErrorInvalidResourceHandle);
  if (stream->capture)
    (void)shim::invalidate(*stream->capture, cudaErrorStreamCaptureUnsupported,
                           "cudaStreamDestroy of a stream that is capturing");
  delete stream; // what it was given still runs
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  std::unique_lock lock(runtime().mutex);
  ++runtime().calls;
  if (!shim::isLive(stream))
    return told(cudaErrorInvalidResourceHandle);
  if (stream->capture)
    return shim::invalidate(*stream->capture, cudaErrorStreamCaptureUnsupported,
                            "cudaStreamSynchronize of a stream that is capturing");
  shim::runUntil(shim::NodePointer(stream->tail), lock);
  return told(runtime().broken);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(runtime().mutex);
  ++runtime().calls;
  if (!shim::isLive(stream))
    return told(cudaErrorInvalidResourceHandle);
  if (stream->capture)
    return shim::invalidate(*stream->capture, cudaErrorStreamCaptureUnsupported,
                            "cudaStreamQuery of a stream that is capturing");
  if (runtime().broken != cudaSuccess || !stream->tail || stream->tail->done)
    return told(runtime().broken);
  for (uint64_t left = 1 + runtime().random() % 8; left > 0 && shim::runOne(); --left)
    continue;
  return told(cudaErrorNotReady);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  const std::lock_guard lock(runtime().mutex);
  *event = new CUevent_st{shim::currentDevice(), (flags & cudaEventDisableTiming) == 0, 0, nullptr, nullptr, {}};
  runtime().events.insert(*event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard lock(runtime().mutex);
  if (runtime().events.erase(event) == 0)
    return told(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(runtime().mutex);
  if (!runtime().events.contains(event) || !shim::isLive(stream))
    return told(cudaErrorInvalidResourceHandle);
  if (event->device != stream->device)
    return told(cudaErrorInvalidResourceHandle, "an event of GPU " + std::to_string(event->device) +
                                                    " is recorded on a stream of GPU " +
                                                    std::to_string(stream->device));
  if (stream->capture && stream->capture->invalid)
    return shim::toldInvalid(*stream->capture);
  const bool isBehindWork = !stream->capture && stream->tail && !stream->tail->done;
  event->node = isBehindWork ? stream->tail : nullptr;
  event->milliseconds = runtime().milliseconds;
  event->capture = stream->capture;
  event->ends = stream->ends;
  shim::runSome();
  return told(runtime().broken);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const std::lock_guard lock(runtime().mutex);
  for (cudaEvent_t event : {begin, end}) {
    if (!runtime().events.contains(event) || !event->isTimed || event->capture)
      return told(cudaErrorInvalidResourceHandle, "the time of an event that was made without, or was captured");
    if (event->node && !event->node->done)
      return told(cudaErrorNotReady);
  }
  const auto timeOf = [](cudaEvent_t event) { return event->node ? event->node->milliseconds : event->milliseconds; };
  *milliseconds = float(timeOf(end) - timeOf(begin));
  return told(runtime().broken);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::lock_guard lock(runtime().mutex);
  if (!runtime().events.contains(event) || !shim::isLive(stream))
    return told(cudaErrorInvalidResourceHandle);
  const auto &from = event->capture;
  if (from && from->ended)
    return told(cudaErrorCapturedEvent, "a wait for an event that was last recorded in a capture, which has ended");
  if (from && stream->capture && from != stream->capture)
    return shim::invalidate(*from, cudaErrorStreamCaptureMerge, "a wait that would join two captures");
  if (from && from->invalid)
    return shim::toldInvalid(*from);
  if (from) { // a fork, or a join
    stream->capture = from;
    stream->ends.insert(event->ends.begin(), event->ends.end());
    return cudaSuccess;
  }
  if (stream->capture && event->node)
    return shim::invalidate(*stream->capture, cudaErrorStreamCaptureIsolation,
                            "a stream that is capturing waits for an event that was recorded outside");
  if (!stream->capture && event->node && !event->node->done)
    stream->tail = shim::add(nullptr, stream->device, {stream->tail, event->node});
  shim::runSome();
  return told(runtime().broken);
}
