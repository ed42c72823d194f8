# levels: none guard sandbox
# Everything that packs: zip, tar with three ways of making it small.
import io, os, tarfile, zipfile
open("a.txt", "w").write("text " * 1000)
with zipfile.ZipFile("a.zip", "w", zipfile.ZIP_DEFLATED) as z: z.write("a.txt")
print(zipfile.ZipFile("a.zip").read("a.txt")[:4], os.path.getsize("a.zip") < 500)
for kind in ("gz", "bz2", "xz"):
    with tarfile.open(f"a.tar.{kind}", f"w:{kind}") as t: t.add("a.txt")
    with tarfile.open(f"a.tar.{kind}") as t: print(kind, t.getnames())
