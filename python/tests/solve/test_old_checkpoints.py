# SPDX-License-Identifier: Apache-2.0
"""Checkpoints written before restarts and units were kept in them load, and continue bit for bit."""

import base64
import zlib

import numpy as np
import pytest

import palimpsest as ps

# The second iteration of solves with A = diag(1..4), b = 1, x0 = 1/4; zlib, base64.
FILES = {
    "conjugate_gradients": (
        "eNrt2b+L3EYUB/BzEUhlp3KZLFPZIGPND0mjK7x2GUiCIUWK9XKMRqNbOXuSkHT2nY8jfSpXIRBIEdInEAikuj/BgSSdG2OX"
        "BrsMBEJmRutbr9kLR3CT5ftpZmek9yS92RkQun3row8/vv0pvbA1uLlo/3pnaN9thvbvzy78dHnnEtl6wxEp6nZP9WSbNGpe"
        "7jWd6fqRavWsvGdIQO6ZtivrimzTgMzLrFXt4cqp9pTPyyq3Y1099xFdX7dq13Rke3JE6qLojE0uwjQOSHbYu3HOAnJwMOM2"
        "iMmcU5pmLClSLbQhx8EySNKUnQaFy5g8jGUYRtzGpkKzs2OYOA3ScZhLkbKMp1mo1OqFKGNSrru9RMexViLJC2GkzuRqVMyl"
        "WBdVsDwqIsE5zXku02QlioVChuuiIh0KQ0MTa5nSIo1Wo0SULAsol0FMpiakeZFnPFfF6mMxGSdsTZC0uSId0zBirvqcHE8D"
        "0puqq9th1hZT6Iue94eN/UX2y6qXbnpnyvUnnE3dXLdl7qea2t6r64buJk5z0LNzhOdMwc5OwcQ5c/BljmJeqz4Wr2U5bxLx"
        "NpJEbyNJ/G9JVnKcmSL5bylsR9eV/bvY3tGw6lu3wOrq7v6u6s3Obqvy0h7u3tg+mrbO5mbP5pu8CgvWhk2DCcnsscVdja6I"
        "4OowqHo9sweuDN3WFK3p3EDo+3VjWmWfbnTLnfPJ1dG1GyPX2D0i0ZpFdpUkNC1EqnnOExVzpRLGFfXBuerVqC5G7sJJkog0"
        "NVxzrQ0XNIoKKTiLUiZDThUjU1uEsndX8w9n/5/moKkrXxO7Zspu54Fpa7JdqHlnAlLt72WmHTaxWekm4NBXZLet7/ezIb7K"
        "jd1FJ9fo66ld8d06U00zL/Xp0ITYJ+RTP0e2dH7kwI24opBAuLYhQeT7s5oEsS9Pdtfo3m/ryXR6fLwFAAAAAP8/8aNHj+/s"
        "yPHq6/97i/b5GBUCAAAAAAAA2BR/foEaAAAAAAAAAGyui5ecF+PSezLuO+e3xXf/X/H9HwAAAAAAAGAD3Hzf+Xb8lffzycOh"
        "xXs/AAAAAAAAwAb54ekHd77+/cfxgz+uf/nsxi8n3y36qAwAAAAAAADA5vjev+8/xPs+AAAAAAAAwAb7xnt58g8ZqBC3"
    ),
    "cgls": (
        "eNrt2kFr3EYUB3CnEMhH6HEZcnBAgdHMSBq5IRvfGmhNaHPbbtuRZsYrursSkpLaNSa3XAul0I+QnANpj/0AOSRQaAM+JoRC"
        "j+2hx85Iyjob7OJCLjX/HwvjkeY9ad5IC2P71vZHNz++9Wl4YaN3Y2jvXezbS1/27R8f7Fx+8O3O8423HBBb1gvVki1SqXmx"
        "qBrTtCNV57PiriEBuWvqpiiXZCsMyLzIalXvrw11Q74qltoda8p5F9G0Za12TUO2JgektLYxLrmgaRyQbL/1xzkLyN7ejLsg"
        "lUWhsMJwLhOqpSSHwXGQDFO2CqKrGKZpLCmNuNQ8FTk7PYaJVVAeu/QiZRlPM6qUWQsKGZPypNvLbGJinpgo1dTImK5HxVyK"
        "EyclbB4nPJLSZNoouxbFqJD0pChjLKM6UzTPE6XDfD1KRMlxAeVxLZSKhXVz0ipORJqSw2lAWrNsyrpfgGE1uvrpdr9yP5E7"
        "xbKVfqVmyvcnnE39stWF7lYtdL3X16X+JlY5wtNz0DOmYKenYOKMOfhxDjsvVRuLN7KcNYl4F0mid5Ek/rckaznWUrhOXi7d"
        "WrveQf/21f5B3503b723VV1mc7NwCSavxwX9uGkwIZnrDNcdbYrgSn9QtfnMndjsu1otKtejIxOFMlVplKaGWxkzGhnFuLE0"
        "NkxmTHejy8rUys1utO0z7FwZXb0+8o17V5M8Z5G2OglTK9Kca56omCuVMK7C4VKtGpV25G8rSfwzbXjO89xwEUaRlYKzKGWS"
        "8lAxMnVFKFp/tW6u7uEye1W57GriHvii+eIbU5dky6p5YwKyvLPITN1/mcwKvwD7XYF26/LrdtbHL7Vx32aTq+GbqX3x/Uui"
        "qmpe5KtDE+JmyP1db3/+IQnEtFst1Zru3N5wrvZnXOsqGPl2Vy0WigTxdHp4uAEAAAAA8F988vtnt9/7oR2vb/8vDO31G6gQ"
        "AAAAAAAAwHnx9z3UAAAAAAAAAOD8unzzO/d5OT76ceE+L8Z/XXv657Wnvwz/D/BsjAoBAAAAAAAA/P/95Lf9R7+On3f7/yc/"
        "f9/9QuAR9v0AAAAAAAAA50i37T96Nf5t2P9v3lfv31cPsf8HAAAAAAAAOEceD3///wfn7+g5"
    ),
    "lsmr": (
        "eNrt3F+IHVcdwPEVFQPi34IoGryMIK3e4Pk3M2fS2t0UDU381xgk4LI2Z2bOdC/e3Xu5925MGkODWCm+1KLomxQVTZ+sGiui"
        "slj8g0WDolbFKtbYohW11D9tfKieO3ez6cQbifW+9PL95GHmzMzvN2d+czI7JxP2hj1v3fe2Gw7KZy1MLG0tb3vRZLnj5GRP"
        "P/7Qj+/61pnPL1zkeFT1BmtuFO2O+q7bWesP/XDUcoNitXPER+3oiB8MO731aLdsR91OPnCDY41DwyHv7ayXYduw160jhqPe"
        "wN3kh9Hu5eNRr6qGPiQ3IkvaUX5sNN5uRDs6enRVhyCpy9xVpdciFkUpZHSifSHIykxtB12IUaVIrBCxtqXOTKEuHaPMdlCR"
        "iNKaTOU6y4VzvhEklbJ2O0qr7ShdhT9FXuoyUyaNL4pKtDXTopyoRGxE6Zw0IT5pRClhrJgWlWYmToXKs7gofKJcMyrsu1BA"
        "e+FUVe4Sp5KiiNMiJGgG2SRV006lrFROulxaaY2RzVNplSZTi5E6Z5Q2QldZokI/m1GJTcy0DrrCVjLORZ6XpUyKRtB4VIgp"
        "QZXxWSptafM0rTLdHBUmFvG0UniRJHFWxTY1wmnbLIXJZKymBOV55n3pUpHmmbF581bFWhk7LSjNfVYaWwhbJKGIzaBUm2mF"
        "sCKUrsqUTrMiji+qXiKNmVYIU2XWJkUsqsQnedG8piSO9dQxkSalrMo0cbGRwqTNoCzR0wpRpGmuXZ4nlU1dUTa7l+pUTSuE"
        "r4yQIqusDUM2s1UzKLVqWiGSTKdVaXXpi8pUyvzHX99phUgq6X2mqrh0WaqyvBmUCDmtEMrbSnmZuKpwceabQZmQclohEp0X"
        "1gunyqqK46pZvcwoMa0QsnQic7LICp3EXupmkNXi8gqx0o5Gfn3YG0wenltP0vrZV46O9cNatNFZH9nxU3bVjdvLRqyMH7mD"
        "Tlk/cWVonT+vGHdiO4e8dI7LTaEunUKZy8yhL+Souj03SsxTL+Yyk5hZJIlnkST5b0kaOS6ZIp1FP+wskmT//8VIMYMccgY5"
        "1Axy6BnkMDPIEc8gxwwGqkxnkMPOIMcMxqmawThVMxinagbjVM1gnKqnOU5Do+ithx9aoXV8MgUYhBTd4drgoslDf9DLu34t"
        "JFg+f1x7ctxKeznKQ2PrvK0rTfuqyUY3KlbDjisnzdKt9UNLtHwsbeayOMu8rmyiROyd0r4SiVc2V2V9tBv1uuFo6XeJpKVc"
        "HN7ic1OGn/lleFFUuqpk4XQee+1NUk1O9z9HhEsP86A65vXCtsKLfZYU4XCv0jx2IT68gJWhTyrkinVRx/T6fhD6NmjtGV/Z"
        "269q7bq2NV6EiUxaFCouw5ubzCoTXiVKnbpEO5cq7eRWCUau1ata43KlaWrGFSh0ePnSRoaXFWu0ijMVXjWlU9FKuDmd0fhs"
        "9T0II80f7ffW63sVhn9neOPNftCLdleuO/TtaH1jLfeDyUxrtTMeGcfqG3fToPe+0eokfr30Yaq3vEs+NfV4UKiwwfX73U6x"
        "vWk5Cleox73e857rx2v1KHIjX+87urVvI2qb8fJI1I7r29btr7qonYzXw71P62XuwmCx27vrZjZu3uxHk5YU4+Zwsi7ruxl2"
        "lWVoqe1WaNTnHLmNUadbhsmqrM89Wg17z2+Jz+cN63UvxmF1N9x6mCmr0Kp7suaODianq3syWO1FbSW2Vusdqu5HMVlXW3tC"
        "NlV3Yq2zPokPr04rJ04sPE3/vO2BN+z92+HF5vT/xUv7Fldf8sif/7T4qU9/6QUPvfPxxQUAAAAAAPAM98Qt1AAAAAAAgPn1"
        "2ZPnlo64Bxe/+f7W1+5++YOL7b3Xdc7u/OnW9/4f8t0fAAAAAIA58LJ91+dXvPEni3cdenRj/77fb967Z/Tzx5PfMu8HAAAA"
        "AGCOvHn52ztOvfrs4que1/rM9x57ePM19fJ+5v8AAAAAAMyR3/z9wOF7rnmS+T4AAAAAAHPsTfX3/78u7px899889bGzd+yo"
        "TvPvAQAAAAAAzJGflUtf/egHHtv80akrXvvoC/+4uf8d37jv1nedYf4PAAAAAMAc+cHVt1SfvPMfzPcBAAAAAJhj1+x83R0f"
        "+fivmf8DAAAAADDH1g6rLz4Rn2X+DwAAAADAHLvzLR/8y8nn/5L5PwAAAAAAcyx/6X2dM597eJNKAAAAAAAwv4r9Xzkw2PsA"
        "3/8BAAAAAJhjt3/97u+cPvAI838AAAAAAObYuXt/0fvujb/j//8DAAAAAAAAAAAAAPCM116iBgAAAAAAzK+r7//wsVcefA7z"
        "fwAAAAAA5tihV9xzbvmhf/H7/wAAAAAAmGO3Pzv6wtrphSUqAQAAAADA/Pr+dQevvfUTf+D7PwAAAAAAc+y5h979q96Xn2T+"
        "DwAAAADAHDv/+//+Dc9qRlw="
    ),
}


@pytest.mark.parametrize("solver", FILES)
def test_old_checkpoints_continue(solver, tmp_path):
    path = tmp_path / "old.pal"
    path.write_bytes(zlib.decompress(base64.b64decode(FILES[solver])))
    solve, A, b, x0 = getattr(ps, solver), ps.Diagonal(np.linspace(1, 4, 4), "N"), np.ones(4), np.full(4, 0.25)
    whole = solve(A, b, x0=x0, max_iterations=4)
    for start in ({"x0": x0}, {}):
        rest = solve(A, b, max_iterations=4, resume=str(path), **start)
        assert rest.iterations == whole.iterations > 2 and rest.status == whole.status
        assert rest.applications == whole.applications
        np.testing.assert_array_equal(rest.x, whole.x)
    with pytest.raises(ValueError, match="does not fit: data of b"):
        solve(A, 2 * b, x0=x0, max_iterations=4, resume=str(path))
