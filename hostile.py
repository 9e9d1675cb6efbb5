import time,sys,threading
from importlib import import_module
from tree_sitter import Language, Parser
G={"js":("tree_sitter_javascript","language"),"ts":("tree_sitter_typescript","language_typescript"),"tsx":("tree_sitter_typescript","language_tsx"),"swift":("tree_sitter_swift","language"),"go":("tree_sitter_go","language"),"java":("tree_sitter_java","language"),"rust":("tree_sitter_rust","language"),"sql":("tree_sitter_sql","language")}
def p(g):
    m,f=G[g]; return Parser(Language(getattr(import_module(m),f)()))
N=20000
I={"open(":"("*N,"bal(":"("*N+")"*N,"open[":"["*N,"open{":"{"*N,"bal{":"{"*N+"}"*N,"lt":"a<"*N,"long":"x"*1000000,"stmts":"a = b + 1;\n"*N,"quote":"\""*N,"tpl":"`${"*N,"words":"foo bar "*N, "mix":"([{<"*(N//4)}
for g in G:
    for k,t in I.items():
        t0=time.perf_counter(); n=0
        def cb(a,b=None):
            global cnt; cnt+=1
            return time.perf_counter()-t0>8
        cnt=0
        try:
            tree=p(g).parse(t.encode(),progress_callback=cb); r="ok" if tree and tree.root_node else "none"
        except Exception as e: r=repr(e)[:60]
        d=time.perf_counter()-t0
        if d>.3: print(g,k,len(t),f"{d:.2f}",r,cnt,flush=True)
