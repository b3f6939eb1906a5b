//===- Diagnostics.cpp - MLIR's diagnostics as one ds::Error ----------------===//
#include "compiler/driver/Diagnostics.h"

#include "core/Error.h"
#include "dialects/Train/LocationName.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace ds::driver;

/// "file:line:column: ", or "node name: ", or nothing.
static std::string placeOf(Location location) {
  if (auto file = dyn_cast<FileLineColLoc>(location))
    return (file.getFilename().getValue() + ":" + llvm::Twine(file.getLine()) + ":" + llvm::Twine(file.getColumn()) +
            ": ")
        .str();
  const std::string name = ds::train::locationName(location);
  return name.empty() ? "" : name + ": ";
}

DiagnosticCollector::DiagnosticCollector(MLIRContext &context)
    : handler_(&context, [this](Diagnostic &diagnostic) {
        std::string text = placeOf(diagnostic.getLocation()) + diagnostic.str();
        for (const Diagnostic &note : diagnostic.getNotes())
          if (!StringRef(note.str()).starts_with("see current operation")) // IR, not an explanation
            text += "\n  note: " + placeOf(note.getLocation()) + note.str();
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          errors_.push_back(std::move(text));
        else if (warnings_.insert(text).second) // plans may be made several times
          llvm::errs() << (diagnostic.getSeverity() == DiagnosticSeverity::Remark ? "note: " : "warning: ") << text
                       << "\n";
        return success();
      }) {}

void DiagnosticCollector::raise(const char *phase) const {
  throw ds::Error(errors_.empty() ? std::string(phase) + " failed without saying why" : errors_.front());
}
