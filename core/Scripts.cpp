#include "core/Scripts.h"

#include <filesystem>
#include <system_error>

namespace ds {

std::string scriptCommand(const std::string &name) {
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::path folder = fs::read_symlink("/proc/self/exe", none).parent_path().parent_path();
  const fs::path models = folder / "share/deepstatic/models", script = models / (name + ".py");
  if (!fs::exists(script, none) || fs::is_symlink(models, none)) // a build's is a link to the sources
    return "python models/" + name + ".py";
  return fs::exists(folder / "programs.py", none) ? "python -m deepstatic." + name : "python " + script.string();
}

} // namespace ds
