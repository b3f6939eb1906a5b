//===- FakeGraph.cpp - captures of streams, and graphs --------------------===//
//
// By the rules of cudaStreamBeginCapture() and cudaThreadExchangeStreamCaptureMode() in CUDA's reference of its
// runtime.
//
//===----------------------------------------------------------------------===//
#include "test/shim/Streams.h"

#include <algorithm>
#include <utility>

struct CUgraph_st {
  std::vector<shim::Captured> nodes;
};

struct CUgraphExec_st {
  std::vector<shim::Captured> nodes;
  shim::NodePointer last; ///< end of the launch before
};

namespace shim {

cudaError_t invalidate(Capture &capture, cudaError_t error, const std::string &sentence) {
  capture.invalid = true;
  capture.why = sentence;
  return told(error, sentence);
}

cudaError_t unsafe(const char *call) {
  if (runtime().broken != cudaSuccess)
    return told(runtime().broken);
  for (const auto &capture : runtime().captures)
    if (capture->mode == cudaStreamCaptureModeGlobal ||
        (capture->mode == cudaStreamCaptureModeThreadLocal && capture->thread == std::this_thread::get_id()))
      return invalidate(*capture, cudaErrorStreamCaptureUnsupported,
                        std::string(call) + " while a stream is capturing");
  return cudaSuccess;
}

namespace {

/// Whether all that was captured comes before `ends`.
bool isJoined(const Capture &capture, const std::set<size_t> &ends) {
  std::vector<bool> before(capture.nodes.size());
  std::vector<size_t> left(ends.begin(), ends.end());
  while (!left.empty()) {
    const size_t node = left.back();
    left.pop_back();
    if (before[node])
      continue;
    before[node] = true;
    left.insert(left.end(), capture.nodes[node].after.begin(), capture.nodes[node].after.end());
  }
  return std::find(before.begin(), before.end(), false) == before.end();
}

/// Streams are fit for use again.
void end(const std::shared_ptr<Capture> &capture) {
  capture->ended = true;
  std::erase(runtime().captures, capture);
  for (cudaStream_t stream : runtime().streams)
    if (stream->capture == capture) {
      stream->capture = nullptr;
      stream->ends.clear();
    }
}

} // namespace

} // namespace shim

using shim::runtime;
using shim::told;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const std::lock_guard lock(runtime().mutex);
  if (!runtime().streams.contains(stream))
    return told(cudaErrorInvalidResourceHandle);
  if (stream->capture)
    return told(cudaErrorIllegalState, "a capture begins on a stream that is capturing");
  stream->capture = std::make_shared<shim::Capture>(shim::Capture{stream, mode, std::this_thread::get_id()});
  runtime().captures.push_back(stream->capture);
  return told(runtime().broken);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  const std::lock_guard lock(runtime().mutex);
  *graph = nullptr;
  if (!runtime().streams.contains(stream))
    return told(cudaErrorInvalidResourceHandle);
  const std::shared_ptr<shim::Capture> capture = stream->capture;
  if (!capture)
    return told(cudaErrorIllegalState, "a capture ends on a stream that is not capturing");
  if (capture->origin != stream)
    return told(cudaErrorStreamCaptureUnmatched, "a capture ends on another stream than it began on");
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
    return told(cudaErrorStreamCaptureWrongThread, "a capture that is not relaxed ends on another thread");
  const bool joined = shim::isJoined(*capture, stream->ends);
  shim::end(capture);
  if (capture->invalid)
    return shim::toldInvalid(*capture);
  if (!joined)
    return told(cudaErrorStreamCaptureUnjoined, "a capture has a fork that was not joined");
  *graph = new CUgraph_st{std::move(capture->nodes)};
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long) {
  if (graph == nullptr)
    return told(cudaErrorInvalidValue);
  if (shim::hasFault("graph"))
    return told(cudaErrorMemoryAllocation);
  *executable = new CUgraphExec_st{graph->nodes, nullptr};
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const std::lock_guard lock(runtime().mutex);
  if (runtime().broken != cudaSuccess)
    return told(runtime().broken);
  if (!runtime().streams.contains(stream))
    return told(cudaErrorInvalidResourceHandle);
  if (stream->capture)
    return told(cudaErrorStreamCaptureUnsupported, "a graph is launched into a stream that is capturing");
  // Behind the stream and behind the launch before; all of it is before what the stream is given next.
  const shim::NodePointer first = shim::add(nullptr, stream->device, {stream->tail, executable->last});
  std::vector<shim::NodePointer> nodes;
  for (const shim::Captured &node : executable->nodes) {
    std::vector<shim::NodePointer> after{first};
    for (const size_t before : node.after)
      after.push_back(nodes[before]);
    nodes.push_back(shim::addInTurn(node.work, node.device, std::move(after)));
  }
  nodes.push_back(first);
  ++runtime().graphs;
  stream->tail = executable->last = shim::add(nullptr, stream->device, nodes);
  shim::runSome();
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable; // what was launched still runs
  return cudaSuccess;
}
