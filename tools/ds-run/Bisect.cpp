//===- Bisect.cpp - ds-run --bisect ---------------------------------------===//
#include "tools/ds-run/Bisect.h"

#include "kernels/KernelRegistry.h"
#include "runtime/bisect/Bisect.h"
#include "tools/ds-run/Arguments.h"
#include "tools/ds-run/Ending.h"

#include <cstdio>

namespace ds::run {

int bisect(const Arguments &arguments) {
  const runtime::BisectResult result = runtime::bisect(arguments.bisect[0], arguments.bisect[1], arguments.training,
                                                       kernels::cpuKernels(), askToEndOnSignals());
  if (!result.note.empty())
    std::fprintf(stderr, "note: %s\n", result.note.c_str());
  std::fputs(result.text.c_str(), stdout);
  return result.differs ? 1 : 0;
}

} // namespace ds::run
