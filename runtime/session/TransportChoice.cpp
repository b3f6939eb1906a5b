//===- TransportChoice.cpp - how a run's ranks reach each other -----------===//
#include "runtime/session/TransportChoice.h"

#include "core/Error.h"
#include "runtime/comm/ControlPlane.h"
#include "runtime/comm/Transport.h"
#include "runtime/comm/inprocess/ByteMover.h"
#include "runtime/comm/inprocess/InProcessTransport.h"
#include "runtime/comm/tcp/TcpControlPlane.h"
#include "runtime/comm/tcp/Torchrun.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plugins/CudaLibrary.h"
#include "runtime/plugins/LoadCuda.h"
#include "runtime/plugins/LoadMpi.h"
#include "runtime/session/DeviceChoice.h"
#include "runtime/session/Training.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

std::string ranksText(uint64_t ranks) { return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks"); }

class Choice {
public:
  Choice(const plan::proto::Plan &plan, const TrainingOptions &options)
      : plan_(plan), options_(options), ranks_(plan::worldSize(plan)),
        onGpus_(plan.machine().device() == "cuda" && (options.device.empty() || options.device == "cuda") &&
                !options.makeDevice) {}

  std::unique_ptr<Transport> make() const {
    if (options_.ranks || !options_.launch)
      return inOneProcess();
    const Launch &launch = *options_.launch;
    if (launch.byTcp && !onGpus_)
      throw Error(launch.launcher + " started this as one of " + std::to_string(*launch.processes) +
                      " processes (WORLD_SIZE), but on the cpu processes talk by MPI, which mpirun has to start",
                  "mpirun -n " + std::to_string(*launch.processes) + " ds-run" + launch.arguments);
    if (launch.processes && *launch.processes != ranks_)
      refuse(*launch.processes);
    if (launch.processes == 1)
      return inOneProcess();
    return onGpus_ ? byNccl() : byMpi();
  }

private:
  [[noreturn]] void refuse(uint64_t processes) const {
    if (processes == 1)
      throw Error(options_.launch->launcher + " started one process, to be one rank, but plan " + options_.planPath +
                      " is for " + ranksText(ranks_) + "; start as many, or run all in this process by -n " +
                      std::to_string(ranks_),
                  "ds-run -n " + std::to_string(ranks_) + " " + options_.planPath + " ...");
    throw Error(options_.launch->launcher + " started " + std::to_string(processes) +
                    " processes, each to be one rank, but plan " + options_.planPath + " is for " + ranksText(ranks_) +
                    "; start as many, or run all in one process by ds-run without " + options_.launch->launcher,
                "mpirun -n " + std::to_string(ranks_) + " ds-run " + options_.planPath + " ...");
  }

  std::unique_ptr<Transport> inOneProcess() const {
    if (options_.ranks.value_or(ranks_) != ranks_)
      throw Error("-n " + std::to_string(*options_.ranks) + " does not fit plan " + options_.planPath +
                  ", which is for " + ranksText(ranks_) + "; leave -n out or compile with --ranks " +
                  std::to_string(*options_.ranks));
    if (!onGpus_)
      return std::make_unique<InProcessTransport>(uint32_t(ranks_));
    std::vector<uint32_t> all(ranks_);
    std::iota(all.begin(), all.end(), 0);
    std::vector<CudaRank> places;
    for (const uint32_t rank : all)
      places.push_back(cudaRank(plan_, rank, all));
    return std::make_unique<InProcessTransport>(uint32_t(ranks_), loadCuda().makeMovers(places));
  }

  std::unique_ptr<Transport> byMpi() const {
    std::unique_ptr<Transport> transport = loadMpiTransport(options_.collectiveTimeout);
    if (transport->ranks() != ranks_)
      refuse(transport->ranks());
    return transport;
  }

  std::unique_ptr<Transport> byNccl() const {
    const CudaLibrary &cuda = loadCuda(); // before others wait for this process
    std::unique_ptr<ControlPlane> control;
    if (options_.launch->byTcp)
      control = byTcp();
    else
      control = byMpi();
    const CudaRank rank = cudaRank(plan_, control->localRanks()[0], control->localRanks());
    return cuda.makeNccl(std::move(control), rank);
  }

  std::unique_ptr<ControlPlane> byTcp() const {
    const auto torchrun = readTorchrun([](const char *name) -> const char * { return std::getenv(name); });
    return std::make_unique<TcpControlPlane>(torchrun->address, torchrun->rank, torchrun->ranks,
                                             options_.collectiveTimeout, torchrun->key);
  }

  const plan::proto::Plan &plan_;
  const TrainingOptions &options_;
  const uint64_t ranks_;
  const bool onGpus_;
};

} // namespace

std::unique_ptr<Transport> chooseTransport(const plan::proto::Plan &plan, const TrainingOptions &options) {
  return Choice(plan, options).make();
}

} // namespace ds::runtime
