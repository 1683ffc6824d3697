"""Registers classes with Keras as soon as Keras is there, and does not import Keras for that.

After `import kcrf`, `keras.saving.load_model` needs no `custom_objects`. Importing all layers at once would keep that
promise too, but then `kcrf --help` and `import kcrf.tags` would wait seconds for TensorFlow. So an import hook watches:
when Keras has been imported, by whomever, the classes are imported and so registered.
"""

import sys
import threading
import warnings

__all__ = ["register_with_keras"]

_KERAS = ("keras", "tf_keras")


def register_with_keras(package, register):
    """Calls `register()` once: now if Keras has been imported, else right after it is.

    If a part of `package` is being imported, `register` waits for its end: importing Keras may be the first thing
    that this part does, and what `register` imports may need all of it.

    Args:
        package: The name of the package whose parts `register` imports.
        register: A function without arguments. An error that it raises becomes a `RuntimeWarning`, since the import
            at whose end it is called has not failed; the next import of Keras or of a part calls it again.
    """
    hook = _Hook(package, register)
    if any(sys.modules.get(name) is not None for name in _KERAS):
        hook.call()
    sys.meta_path.insert(0, hook)


class _Hook:
    """A finder that finds nothing by itself, but is told when watched modules have been executed.

    It stays in `sys.meta_path` when it is done: another thread may be going through that list.
    """

    def __init__(self, package, register):
        self._package, self._register = package, register
        self._is_done, self._thread = False, threading.local()

    def find_spec(self, name, path=None, target=None):
        if self._is_done or not (name in _KERAS or name.rpartition(".")[0] == self._package):
            return None
        below = sys.meta_path[sys.meta_path.index(self) + 1 :]  # all others might be asking this one
        specs = (finder.find_spec(name, path, target) for finder in below if hasattr(finder, "find_spec"))
        spec = next(filter(None, specs), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, self)
        return spec

    def execute(self, loader, module):
        """Executes a watched module, and registers if it is not inside another one and Keras is there."""
        depth = getattr(self._thread, "depth", 0)
        self._thread.depth = depth + 1
        try:
            loader.exec_module(module)
        finally:
            self._thread.depth = depth
        if depth == 0 and any(sys.modules.get(name) is not None for name in _KERAS):
            self.call()

    def call(self):
        """Registers; while it does, imports are not watched."""
        if self._is_done:
            return
        self._is_done = True
        try:
            self._register()
        except Exception as error:
            self._is_done = False
            warnings.warn(f"kcrf could not register its classes with Keras: {error}", RuntimeWarning, stacklevel=2)


class _Loader:
    """Another loader, but for `exec_module`, which goes through the hook. Modules show the other loader as theirs."""

    def __init__(self, loader, hook):
        self._loader, self._hook = loader, hook

    def __getattr__(self, name):  # runpy, for one, asks for `get_code`
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._hook.execute(self._loader, module)
