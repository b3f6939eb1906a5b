#include "kernels/cpu/Isa.h"
#include "core/Error.h"
#include "kernels/cpu/TileGemm.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

namespace ds::kernels {

namespace {

Isa widest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return !__builtin_cpu_supports("avx512bf16") ? Isa::Avx512 : requestTiles() ? Isa::Amx : Isa::Avx512Bf16;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return Isa::Avx2;
#endif
  return Isa::Baseline;
}

Isa capped() {
  const char *cap = std::getenv("DS_CPU_ISA");
  if (cap == nullptr || *cap == '\0')
    return widest();
  std::string names;
  for (Isa limit : {Isa::Baseline, Isa::Avx2, Isa::Avx512, Isa::Avx512Bf16, Isa::Amx}) {
    if (std::string_view(cap) == nameOf(limit))
      return std::min(widest(), limit);
    names += std::string(names.empty() ? "" : ", ") + nameOf(limit);
  }
  throw Error("the environment variable DS_CPU_ISA is '" + std::string(cap) + "', which is none of " + names);
}

} // namespace

const char *nameOf(Isa isa) {
  switch (isa) {
  case Isa::Baseline:
    return "baseline";
  case Isa::Avx2:
    return "avx2";
  case Isa::Avx512:
    return "avx512";
  case Isa::Avx512Bf16:
    return "avx512_bf16";
  case Isa::Amx:
    return "amx";
  }
  return "unknown";
}

Isa isa() {
  static const Isa chosen = capped();
  return chosen;
}

} // namespace ds::kernels
