#include "kernels/cpu/Isa.h"
#include "kernels/cpu/TileGemm.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace ds::kernels {

namespace {

Isa widest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return requestTiles() ? Isa::Amx : Isa::Avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return Isa::Avx2;
#endif
  return Isa::Baseline;
}

Isa capped() {
  const char *text = std::getenv("DS_CPU_ISA");
  const std::string_view cap = text ? text : "";
  const Isa limit = cap == "baseline" ? Isa::Baseline
                    : cap == "avx2"   ? Isa::Avx2
                    : cap == "avx512" ? Isa::Avx512
                                      : Isa::Amx;
  return std::min(widest(), limit);
}

} // namespace

Isa isa() {
  static const Isa chosen = capped();
  return chosen;
}

} // namespace ds::kernels
