//===- SharedGraph.cpp - one graph of cuDNN for equal calls ----------------===//
#include "kernels/cuda/SharedGraph.h"

#include <algorithm>
#include <vector>

namespace ds::kernels::cuda {

namespace {

struct Made {
  int device;
  Invocation invocation;
  std::weak_ptr<CudnnGraph> graph;
  bool refused;
};

} // namespace

std::shared_ptr<CudnnGraph> sharedGraph(const Invocation &invocation,
                                        const std::function<std::unique_ptr<CudnnGraph>()> &make) {
  static thread_local std::vector<Made> all;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess)
    return nullptr;
  std::erase_if(all, [](const Made &made) { return !made.refused && made.graph.expired(); });
  const auto equal = std::ranges::find_if(
      all, [&](const Made &made) { return made.device == device && made.invocation == invocation; });
  if (equal != all.end())
    return equal->graph.lock();
  std::shared_ptr<CudnnGraph> graph = make();
  all.push_back({device, invocation, graph, graph == nullptr});
  return graph;
}

} // namespace ds::kernels::cuda
