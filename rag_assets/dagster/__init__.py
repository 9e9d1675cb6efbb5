"""The public API for teams with their own Dagster project; other modules are not stable.

```python
defs = dg.Definitions.merge(our_definitions, build_defs(name="kb", upstream=["wiki_export"]))
```
"""

from rag_assets.common.installation import Installation
from rag_assets.dagster.component import KnowledgeBaseComponent
from rag_assets.dagster.project import build_defs

__all__ = ["Installation", "KnowledgeBaseComponent", "build_defs"]
