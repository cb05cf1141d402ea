<!DOCTYPE PickedPoints>
<PickedPoints>
 <point active="1" x="0.749" y="1.06" z="0.77" name="a"/>
 <point active="1" x="2.0" y="1.081" z="1.284" name="b"/>
 <point active="1" x="-0.54" y="0.107" z="0.563" name="c"/>
 <point active="1" x="-0.018" y="0.302" z="0.426" name="d"/>
 <point active="1" x="0.844" y="-0.102" z="-0.35" name="e"/>
</PickedPoints>
